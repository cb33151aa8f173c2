"""How far a protection goes: trainings, counter-measures, attacks without the key, image quality."""
