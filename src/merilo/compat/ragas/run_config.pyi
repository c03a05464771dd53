from merilo_published.compat.ragas.run_config import *
