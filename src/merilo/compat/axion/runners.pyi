from merilo_published.compat.axion.runners import *
