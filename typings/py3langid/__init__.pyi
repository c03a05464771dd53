# The part of py3langid 0.4 that merilo calls; the package ships no types.
