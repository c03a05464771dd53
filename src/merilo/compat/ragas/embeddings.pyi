from merilo_published.compat.ragas.models import *
