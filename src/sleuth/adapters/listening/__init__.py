"""The one listening loop: events, recorders, steps, pace, alarms and the watch that drains them."""
