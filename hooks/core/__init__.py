"""What every resource shares: the wire contract, deciding, converging and conditions.

Knows Metacontroller and Kubernetes, no resource and no driver; standard library only.
"""
