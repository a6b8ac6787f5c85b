"""Ranked lists to numbers: recall, means, intervals, controls and the paired comparison.

Pure mathematics over `model.py`: no files, network, clock or environment, and nothing about how a number is shown.
Import from the modules: `recall`, `aggregate`, `interval`, `controls`, `comparison`, `significance`.
"""
