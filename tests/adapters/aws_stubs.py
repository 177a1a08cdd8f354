"""botocore's Stubber on the adapters' own clients: it checks parameters against AWS's service models."""

from botocore.stub import Stubber

from leeward.adapters.aws.clients import AwsClients


class StubbedAws:
    """`expect` queues one answer, `refuse` one error; leaving the test with one of them unused is a failure."""

    def __init__(self):
        self.clients = AwsClients("us-east-1")
        self._stubs = {}

    def expect(self, service, operation, parameters, answer=None, *, retries=True, region=None):
        self._stub(service, retries, region).add_response(operation, answer or {}, parameters)

    def refuse(self, service, operation, code, message="", *, status=400, retries=True, parameters=None, region=None):
        stub = self._stub(service, retries, region)
        stub.add_client_error(operation, code, message, status, expected_params=parameters)

    def finish(self):
        for stub in self._stubs.values():
            stub.assert_no_pending_responses()
            stub.deactivate()

    def _stub(self, service, retries, region):
        client = self.clients.get(service, retries=retries, region=region)
        if id(client) not in self._stubs:
            self._stubs[id(client)] = Stubber(client)
            self._stubs[id(client)].activate()
        return self._stubs[id(client)]
