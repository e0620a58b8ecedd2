"""The course's interactives, a module each: its data in Python, its drawing beside it.

`widgets/token_order.py` holds the function `token_order`, `widgets/token_order.js` the
body `(state, data, ui)` that draws it; `course_utils.display.interactive` is their
frame.
"""
