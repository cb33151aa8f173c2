"""The method's own choices as a search: protection, measured by trainings, against the quality of the images."""
