"""What the bucket says, for people and programs that look: names, views, lists, logs. This room writes nothing."""
