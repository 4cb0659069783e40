"""The data of ../programs/synthetic.py, for programs beside this file."""

import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "programs"))
from synthetic import Corpus, Digits, Shapes, community_graph, sentences  # noqa: E402,F401
