{{- define "database-hooks.labels" -}}
app.kubernetes.io/name: database-hooks
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "database-hooks.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- /* The environment variables: what the chart sets, under what the user sets. */}}
{{- define "database-hooks.settings" -}}
{{- $settings := dict "HOOK_TOKEN_FILES" "/etc/database-hooks/token/token" -}}
{{- if .Values.postgresql.enabled -}}
{{- $settings = merge $settings .Values.postgresql.settings -}}
{{- else -}}
{{- $_ := set $settings "RESOURCES" "ingestion,initsql" -}}
{{- end -}}
{{- if ne .Values.initSql.mode "none" -}}
{{- $_ := set $settings "INIT_SQL_IMAGE" (include "database-hooks.image" .) -}}
{{- end -}}
{{- if .Values.tls.enabled -}}
{{- $_ := set $settings "TLS_CERT_FILE" "/etc/database-hooks/tls/tls.crt" -}}
{{- $_ := set $settings "TLS_KEY_FILE" "/etc/database-hooks/tls/tls.key" -}}
{{- end -}}
{{- toYaml (merge (deepCopy .Values.settings) $settings) -}}
{{- end }}

{{- /* One hook of a controller; called with a list of the root and the path. */}}
{{- define "database-hooks.hook" -}}
{{- $root := index . 0 -}}
version: v2
webhook:
  service:
    name: database-hooks
    namespace: {{ $root.Release.Namespace }}
    port: 8080
    protocol: {{ ternary "https" "http" $root.Values.tls.enabled }}
  path: {{ index . 1 }}
  timeout: 30s
  authorization:
    type: Bearer
    secretRef:
      name: {{ $root.Values.hookToken.secretName }}
      namespace: {{ $root.Release.Namespace }}
      key: token
  {{- if $root.Values.tls.enabled }}
  caBundle:
    secretRef:
      name: {{ $root.Values.tls.secretName }}
      namespace: {{ $root.Release.Namespace }}
      key: ca.crt
  {{- end }}
{{- end }}

{{- /* What belongs to a PostgresCluster; the same under both controllers. */}}
{{- define "database-hooks.initSqlChildren" -}}
- apiVersion: batch/v1
  resource: jobs
  updateStrategy:
    method: OnDelete
- apiVersion: v1
  resource: serviceaccounts
  updateStrategy:
    method: OnDelete
- apiVersion: rbac.authorization.k8s.io/v1
  resource: roles
  updateStrategy:
    method: OnDelete
- apiVersion: rbac.authorization.k8s.io/v1
  resource: rolebindings
  updateStrategy:
    method: OnDelete
{{- end }}

{{- /* A role and its binding to the hooks; called with a list of the root, kind, name, rules. */}}
{{- define "database-hooks.role" -}}
{{- $root := index . 0 -}}
{{- $kind := index . 1 -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
metadata:
  name: {{ index . 2 }}
  {{- if eq $kind "Role" }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "database-hooks.labels" $root | nindent 4 }}
rules:
  {{- toYaml (index . 3) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
metadata:
  name: {{ index . 2 }}
  {{- if eq $kind "Role" }}
  namespace: {{ $root.Release.Namespace }}
  {{- end }}
  labels:
    {{- include "database-hooks.labels" $root | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ $kind }}
  name: {{ index . 2 }}
subjects:
  - kind: ServiceAccount
    name: database-hooks
    namespace: {{ $root.Release.Namespace }}
{{- end }}
