"""Engines of other projects that run parts of an evaluation in several processes.

::

    commands/evaluate/distributed.py   the evaluation: plans blocks, shows progress, merges
        └── runners/ray.py             runs a function on each block, in the workers of a Ray cluster

A runner knows nothing of an evaluation, so it is all that has to be written for another engine.
"""
