-- SQLite reads the wall clock once for each statement.
select 'realtime ' || printf('%.3f', (julianday('now') - 2440587.5) * 86400.0);
select 'seconds ' || strftime('%s', 'now');
