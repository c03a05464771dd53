from merilo_published.compat.ragas.llms import *
