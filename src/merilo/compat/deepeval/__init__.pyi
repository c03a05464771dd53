from merilo_published.compat.deepeval import *
