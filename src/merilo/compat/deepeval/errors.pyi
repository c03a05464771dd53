from merilo_published.compat.deepeval.test_case import *
