"""Live problems on a device: `graph` keeps a maximum matching while edges come and go."""
