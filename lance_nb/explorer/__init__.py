"""The notebook interface: view models, widgets over them, static pictures beside them."""
