from merilo_published.compat.axion.metrics import *
