"""One widget per file, its ES module and style sheet beside it; the registry names them."""
