from merilo_published.compat.ragas.scorers import *
