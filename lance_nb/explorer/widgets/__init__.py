"""One widget per file, its ES module and style sheet beside it; ``explorer.registry`` names them."""
