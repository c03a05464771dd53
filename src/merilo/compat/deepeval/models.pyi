from merilo_published.compat.deepeval.metrics import *
