"""Requests worded by the prompt objects of an installed package, for the published definitions that are named after it.

`prompts` is the table: which upstream object words which request of which definition. `ragas` and `packages` call those
objects. `worded` puts their texts in the place of merilo's. A package is imported only when a run asks for it.
"""
