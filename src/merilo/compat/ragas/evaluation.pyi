from merilo_published.compat.ragas.evaluation import *
