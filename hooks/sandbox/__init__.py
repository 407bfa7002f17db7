"""The local world: real servers, doubles for what no wheel ships, and a Metacontroller runner."""
