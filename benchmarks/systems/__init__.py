"""One module a system that is measured. A function a scenario: it prepares, and gives what is then measured."""
