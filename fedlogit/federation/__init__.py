"""A federation: clients, a public set, and what they send each other."""

from fedlogit.engine.client import Client, State
from fedlogit.engine.one_sample import explain_single_sample
from fedlogit.federation.federation import Federation
from fedlogit.federation.ledger import Ledger

__all__ = ["Client", "Federation", "Ledger", "State", "explain_single_sample"]
