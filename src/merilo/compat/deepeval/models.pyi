from merilo_published.compat.deepeval.models import *
