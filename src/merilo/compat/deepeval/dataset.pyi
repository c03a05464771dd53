from merilo_published.compat.deepeval.evaluate import *
