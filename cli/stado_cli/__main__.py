"""`python -m stado_cli`: the same as `stado`, where the script is not on the path."""

import sys

from stado_cli.main import main

sys.exit(main())
