from merilo_published.compat.ragas.dataset_schema import *
