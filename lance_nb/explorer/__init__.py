"""The notebook interface: view models, the widgets over them, and the static pictures beside them."""
