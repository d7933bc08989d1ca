"""A rig that kills writers and takes their power away, for as long as one wants: make torture."""
