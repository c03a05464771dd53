from merilo_published.compat.deepeval.dataset import *
