"""Models of other people's packages and repositories, a set a file, as `benchmarks.outside_models` and `benchmarks.third_party` run them."""
