from merilo_published.compat.ragas import *
