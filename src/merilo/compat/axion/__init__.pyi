from merilo_published.compat.axion import *
