from . import encodings as encodings
from . import encodings21 as encodings21
from . import file as file
from . import file2 as file2
from . import index as index
from . import rowids as rowids
from . import table as table
from . import transaction as transaction
