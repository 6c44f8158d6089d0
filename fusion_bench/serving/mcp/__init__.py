"""The bench as tools of the Model Context Protocol (MCP), for agents that propose configurations.

The protocol: Model Context Protocol, https://modelcontextprotocol.io.
"""
