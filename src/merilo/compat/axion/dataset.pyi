from merilo_published.compat.axion.dataset import *
