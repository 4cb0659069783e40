"""`dynvm profile script.py`: where the time went.

    __main__.py   the command: runs the script in a process of its own with --profile, then presents what that wrote
    model.py      profile.json read, and the tables derived from it: lines, traces, kernels, calls, exits
    machine.py    what this machine can do, for the fraction of the roofline
    advice.py     findings, one line each
    report.py     the tables on the terminal
    formats.py    trace.json (Chrome, Perfetto) and profile.speedscope.json
    viewer.py     index.html, from viewer.html, viewer.css and viewer.js

The data and its format: docs/profile.md. Tests: tests/profile.
"""
