"""moto on a free port of loopback: prints the endpoint, serves until standard input ends."""
import json
import logging
import os
import sys
import threading

from moto.iam.models import ManagedPolicy, Role
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server


def end_with_owner():
    """Whoever started us holds the other end of our input, and loses it even when killed."""
    sys.stdin.read()
    os._exit(0)


def take_documents_as_text(model):
    """CloudFormation accepts a policy as an object or as text, and only text can have parameters in its keys; moto wants objects."""
    create = model.create_from_cloudformation_json.__func__

    def create_from_text(cls, resource_name, cloudformation_json, *rest, **more):
        properties = cloudformation_json.get("Properties", {})
        for key in ("PolicyDocument", "AssumeRolePolicyDocument"):
            if isinstance(properties.get(key), str):
                properties[key] = json.loads(properties[key])
        return create(cls, resource_name, cloudformation_json, *rest, **more)

    model.create_from_cloudformation_json = classmethod(create_from_text)


take_documents_as_text(ManagedPolicy)
take_documents_as_text(Role)
# One line per request would only hide what the tests print.
logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=True)
threading.Thread(target=end_with_owner, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
