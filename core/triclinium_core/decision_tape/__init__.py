"""Decision tape: an allow-list of facts about operations, connections and cluster maps, with every retry decision."""
