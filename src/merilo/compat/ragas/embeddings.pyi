from merilo_published.compat.ragas.embeddings import *
