from merilo_published.compat.spring_ai_ragas import *
