"""What the verbs of the façade do; its methods import a module when they are called.

Who only reads does not pay for writing.
"""
