"""`./dev new-check` and `./dev check`: what an author would otherwise do by hand. CONTRIBUTING.md says how."""
