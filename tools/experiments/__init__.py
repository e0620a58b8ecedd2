"""Run the long experiments of `book/experiments` and store what they measured.

    python -m tools.experiments [NN …]    what is missing or stale (make experiments)
    python -m tools.experiments --list    one line each: stored, or what is missing
    python -m tools.experiments --verify  measure this week's, or NN, again and compare

A script, `NN_name.py`, is plain Python of a size to read and defines

    SETTINGS, SMOKE    dicts with the same keys: the real sizes, and tiny ones (seconds)
    points(settings)   a list of dicts, each with all that one run needs; the seed is
                       under "seed"
    run(point)         one run: seeds itself, returns a dict of numbers (or lists)
    check(points)      asserts the claim, on the real points and on the smoke run alike;
                       the page has the same function, and a test compares the two

A stored point is the point, its result and its seconds in one dict. Each is written to
`course_utils/experiments/NN_name.json` as soon as it is there: interrupted, the next
call goes on. The numbers of the smoke run are stored with them, as a fingerprint. When
it changes (by more than TOLERANCE, 1e-3 unless the script sets it), what is computed
has changed, and everything is measured again; a file that only moved costs nothing.
"""
