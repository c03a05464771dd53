from merilo_published.compat.deepeval.errors import *
