x: int = "a"
