"""moto on a free port of loopback: prints the endpoint, serves until standard input ends."""
import logging
import os
import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def end_with_owner():
    """Whoever started us holds the other end of our input, and loses it even when killed."""
    sys.stdin.read()
    os._exit(0)


# One line per request would only hide what the tests print.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
threading.Thread(target=end_with_owner, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
